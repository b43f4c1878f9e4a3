"""The examples in Python that use the package: a web service that learns, and the notebook as a
script.
"""
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree

import pytest


@pytest.fixture
def service(examples, build):
    """(port) of examples/learn.py."""
    process = subprocess.Popen(
        [sys.executable, str(examples / "learn.py"), "0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=dict(os.environ, PYTHONPATH=str(build / "python")),
    )
    try:
        line = process.stdout.readline()
        yield int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)\n", line).group(1))
    finally:
        process.kill()
        process.communicate()


def post(port, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", "/", body if isinstance(body, bytes) else json.dumps(body).encode())
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def test_a_web_service_that_learns(service):
    for i in range(60):
        status, answer = post(
            service,
            {
                "x": {"temp": i % 10, "machine": "p%d" % (i % 3)},
                "y": "hot" if i % 10 > 4 else "cold",
            },
        )
        assert status == 200 and answer["learned"]
    status, answer = post(service, {"x": {"temp": 9, "machine": "p1"}})
    assert (status, answer["y"], answer["learned"]) == (200, "hot", False)
    assert sum(p for _, p in answer["proba"]) == pytest.approx(1)
    for wrong, text in (
        (b"{", "JSONDecodeError"),
        ({"y": 1}, "KeyError: 'x'"),
        ({"x": {"temp": "word"}}, "temp"),
        ({"x": {"temp": [1]}}, "temp"),
    ):
        status, answer = post(service, wrong)
        assert status == 400 and text in answer["error"], answer
    found = []
    threads = [
        threading.Thread(
            target=lambda: found.append(
                post(service, {"x": {"temp": 1, "machine": "p2"}, "y": "cold"})
            )
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert [status for status, _ in found] == 8 * [200]


def test_the_notebook_as_a_script(examples, build, tmp_path):
    """With elec2, or where that is absent with the weather."""
    folder = os.environ.get("SVMSTREAM_DATA", str(tmp_path))
    name = "elec2" if os.path.exists(os.path.join(folder, "elec2.csv.gz")) else "weather"
    env = dict(os.environ, DATA=folder, TMPDIR=str(tmp_path), PYTHONPATH=str(build / "python"))
    done = subprocess.run(
        [sys.executable, str(examples / "notebook.py")],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("data: %s\n" % name)
    assert re.search(
        r"(?m)^accuracy 0\.(929|930)$" if name == "elec2" else r"(?m)^accuracy 0\.81", done.stdout
    )
    assert re.search(r"(?m)^row  *\d+  open .*(wrong|errors)", done.stdout), "a drift alarm"
    assert re.search(
        r"(?m)^largest difference of a weight: .*e-(?:[1-9]\d|0[89])$", done.stdout
    ), done.stdout
    for path in re.findall(r"(?m)^plot: (.*)$", done.stdout):
        page = open(path, encoding="utf-8").read()
        ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])


def test_the_notebook_has_cells(examples):
    text = (examples / "notebook.py").read_text()
    assert (
        len(re.findall(r"^# %%$", text, re.M)) >= 5
        and len(re.findall(r"^# %% \[markdown\]$", text, re.M)) >= 5
    )
