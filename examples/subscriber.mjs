#!/usr/bin/env node
// Reads the events of a running svmstream in Node: models, scores and alerts.
//
//     cd examples && npm ci --ignore-scripts
//     svmstream run --method alsvm --publish.every 1 &
//     node subscriber.mjs tcp://127.0.0.1:5556                            prints every event as a line of JSON
//     node subscriber.mjs tcp://127.0.0.1:5555 tcp://127.0.0.1:5556       sends samples, compares its scores
//
// The second form sends 300 samples of its own (three classes). For each score whose model version it holds it computes
// W x + b and compares it with the score of the process; with publish.every 1 every version is published. Exit code 0:
// all are equal.
const USAGE = `usage: node subscriber.mjs OUT
       node subscriber.mjs IN OUT
IN and OUT are addresses as svmstream run prints them, such as tcp://127.0.0.1:5555 tcp://127.0.0.1:5556`;
const PACKAGES = ["zeromq", "@msgpack/msgpack"];
const KINDS = ["model", "score", "alert"];
const SAMPLES = 300;
const PATIENCE = 10000; // milliseconds without an event

function fail(code, text) {
  console.error(text);
  process.exit(code);
}

async function packages() {
  const loaded = [];
  for (const name of PACKAGES) {
    try {
      loaded.push(await import(name));
    } catch (error) {
      const folder = new URL(".", import.meta.url).pathname;
      const absent = error.code === "ERR_MODULE_NOT_FOUND";
      fail(1, `subscriber.mjs: the package ${name} ${absent ? "is not installed" : `does not load (${error.message})`}; ` +
        `run: cd ${folder} && npm ci --ignore-scripts`);
    }
  }
  return loaded;
}

// ext 1 and 2: float32 and float64, little-endian, without padding. A payload is a view at any offset of a larger
// buffer, and typed arrays need aligned memory: the values are read one by one.
function packedNumbers(bytes, size, read) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.byteLength / size }, (_, i) => view[read](i * size, true));
}

function codec(msgpack) {
  const extensionCodec = new msgpack.ExtensionCodec();
  for (const [type, size, read, write] of [[1, 4, "getFloat32", "setFloat32"], [2, 8, "getFloat64", "setFloat64"]]) {
    extensionCodec.register({
      type,
      encode: (value) => {
        if (!(value instanceof (type === 1 ? Float32Array : Float64Array))) return null;
        const view = new DataView(new ArrayBuffer(size * value.length));
        value.forEach((v, i) => view[write](i * size, v, true));
        return new Uint8Array(view.buffer);
      },
      decode: (bytes) => packedNumbers(bytes, size, read),
    });
  }
  // Not every integer of 64 bits (an epoch, an id) fits a number of JavaScript: those of that size become BigInt.
  return {
    decode: (bytes) => msgpack.decode(bytes, { extensionCodec, useBigInt64: true }),
    encode: (value) => msgpack.encode(value, { extensionCodec }),
  };
}

// Events lost on the way leave a gap in seq, which counts by topic from 0 and starts again with the epoch. The last
// model is sent again at each new subscription: an event that is not newer is passed over.
class Sequence {
  #last = new Map();
  lost = 0;

  isNew(topic, event) {
    const before = this.#last.get(topic), seq = Number(event.seq);
    const same = before !== undefined && before.epoch === event.epoch;
    if (same && seq <= before.seq) return false;
    if (same && seq > before.seq + 1) {
      const gap = seq - before.seq - 1;
      this.lost += gap;
      console.error(`lost ${gap} of ${topic} before seq ${seq}`);
    } else if (before !== undefined && !same) {
      console.error(`${topic} starts again: the process has another history (epoch ${event.epoch})`);
    }
    this.#last.set(topic, { epoch: event.epoch, seq });
    return true;
  }
}

// Readers of JSON round integers beyond 2^53: these become strings. An open end of a range, an infinity, becomes null.
const line = (event) => JSON.stringify(event, (_, v) =>
  typeof v !== "bigint" ? v : Number.isSafeInteger(Number(v)) ? Number(v) : v.toString());

async function* events(sub, out, { decode }, sequence) {
  for (;;) {
    let frames;
    try {
      frames = await sub.receive();
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      console.error(`no event from ${out} for ${PATIENCE / 1000} s; is it the address \`out\` of a running svmstream?`);
      yield [null, null];
      continue;
    }
    const topic = frames[0].toString(), event = decode(frames[1]);
    if (topic.startsWith("stats.") || sequence.isNew(topic, event)) yield [topic, event];
  }
}

async function print(sub, out, codec) {
  for (const kind of KINDS) sub.subscribe(kind + ".");
  for await (const [topic, event] of events(sub, out, codec, new Sequence())) {
    if (topic !== null) process.stdout.write(line({ topic, ...event }) + "\n");
  }
}

function* ownSamples() {
  const centre = [[0, 0, 1, 0], [3, 0, 0, 1], [0, 3, -1, 0]], names = ["red", "green", "blue"];
  for (let id = 0; id < SAMPLES; id++) {
    const k = Math.floor(3 * Math.random());
    const x = centre[k].map((c) => Math.fround(c + 4 * (Math.random() - 0.5)));
    yield { id, x: id % 2 ? Float32Array.from(x) : Float64Array.from(x), y: names[k] };
  }
}

// W has a row for each class from three on, and one for two: a positive score means classes[1].
function ownScores(model, x) {
  const b = [model.b].flat();
  return b.map((bias, row) => x.reduce((sum, v, j) => sum + model.W[row * model.d + j] * v, bias));
}

const near = (a, b) => a.length === b.length && a.every((v, i) => Math.abs(v - b[i]) <= 1e-9 + 1e-9 * Math.abs(b[i]));

function compare(models, scores, xs) {
  let compared = 0, equal = 0, right = 0;
  for (const [id, event] of scores) {
    const model = models.get(event.model);
    if (model === undefined || model.d !== xs.get(id).length) continue;
    const own = ownScores(model, xs.get(id));
    const best = own.length > 1 ? own.indexOf(Math.max(...own)) : Number(own[0] > 0);
    compared++;
    equal += near(own, event.scores);
    right += model.classes[best] === event.yhat;
  }
  return [compared, equal, right];
}

async function sendAndCompare(push, sub, out, codec) {
  // Subscriptions travel in order: when the last of them delivers, all are in force, as the process repeats its stats.
  for (const kind of [...KINDS, "stats"]) sub.subscribe(kind + ".");
  const sequence = new Sequence(), models = new Map(), scores = new Map(), xs = new Map();
  for await (const [topic, event] of events(sub, out, codec, sequence)) {
    if (topic === null) fail(1, "subscriber.mjs: not all scores arrived");
    if (topic.startsWith("stats.") && xs.size === 0) {
      sub.unsubscribe("stats.");
      for (const sample of ownSamples()) {
        xs.set(sample.id, sample.x);
        await push.send(codec.encode(sample));
      }
    }
    if (topic.startsWith("model.")) models.set(event.version, event);
    if (topic.startsWith("score.") && xs.has(event.id)) scores.set(event.id, event);
    if (scores.size === SAMPLES) break;
  }
  const [compared, equal, right] = compare(models, scores, xs);
  console.log(`${compared} scores compared, ${equal} equal, ${right} with the same class; ${sequence.lost} events lost`);
  return compared >= SAMPLES / 2 && equal === compared && right === compared ? 0 : 1;
}

function connect(socket, address) {
  try {
    socket.connect(address);
  } catch (error) {
    fail(2, `subscriber.mjs: ${address} is not an address (${error.message}); an example is tcp://127.0.0.1:5556`);
  }
}

async function main(words) {
  if (words.length < 1 || words.length > 2 || words[0].startsWith("-")) fail(2, USAGE);
  const [zmq, msgpack] = await packages();
  const out = words.at(-1), sub = new zmq.Subscriber({ receiveHighWaterMark: 0, receiveTimeout: PATIENCE, linger: 0 });
  connect(sub, out);
  if (words.length === 1) return print(sub, out, codec(msgpack));
  const push = new zmq.Push({ sendTimeout: PATIENCE });
  connect(push, words[0]);
  const code = await sendAndCompare(push, sub, out, codec(msgpack));
  push.close();
  sub.close();
  process.exitCode = code;
}

process.stdout.on("error", (error) => process.exit(error.code === "EPIPE" ? 0 : 1)); // its reader has ended
await main(process.argv.slice(2));
