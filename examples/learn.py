#!/usr/bin/python3
"""A web service that predicts and learns, in twenty lines and without a framework.

    make python && PYTHONPATH=build/python examples/learn.py 8080 &
    curl -s localhost:8080 -d '{"x": {"temp": 21.5, "machine": "press-03"}, "y": "ok"}'

A row with y is predicted, then learned; one without y is predicted alone. Nothing of a row that is refused was learned.
"""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import svmstream

model = svmstream.Auto()  # one object serves all threads


class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        try:
            row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            step = model.step(row["x"], row.get("y"))
            status, answer = 200, {"y": step.y, "proba": list(step.proba.items()), "learned": step.learned}
        except (KeyError, TypeError, ValueError) as error:
            status, answer = 400, {"error": "%s: %s" % (type(error).__name__, error)}
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Service)
print("http://127.0.0.1:%d" % server.server_port, flush=True)
server.serve_forever()
