// Driver: what the drivers of the Node peers share. It has the protocol of driver.py, writes the
// files of call_counter.py and pickup_log.py, and enqueues as producer.py does.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { openSync, readdirSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";

const PAYLOAD_BYTES = 100;
const SLOTS = 512;
const CELLS = 3;
const TICK = 5; // milliseconds between two writes of the counts: Node has no shared memory

/** Load a package of the peer's own environment. */
export const load = createRequire(join(process.env.BENCH_HOME, "package.json"));

export const reply = (fields) => writeSync(1, JSON.stringify(fields) + "\n");

export const payload = (number) => ({
  number,
  rest: "x".repeat(PAYLOAD_BYTES - 21 - String(number).length),
});

const { holds = false, options = {} } = JSON.parse(process.argv[3] ?? "{}");
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function readSignal() {
  const { done } = await lines.next();
  if (done) process.exit(1);
}

/** Report that the driver is ready, and wait for the start signal. */
export async function waitForStart() {
  reply({ ready: true });
  await readSignal();
}

/**
 * Wait for the start signal, and report how many seconds the function took. A driver that `holds`
 * then waits for a second signal with its connections open.
 */
export async function timed(work) {
  await waitForStart();
  const began = process.hrtime.bigint();
  await work();
  reply({ seconds: Number(process.hrtime.bigint() - began) / 1e9 });
  if (holds) await readSignal();
}

export class Task {
  constructor({ address = "", jobs = 0, options = {} }) {
    Object.assign(this, { address, jobs, options });
    this.sleepMs = options.sleep_ms ?? 0; // what a job takes
  }

  payloads() {
    return Array.from({ length: this.jobs }, (_, number) => payload(number));
  }

  *batchesOf(size, payloads) {
    for (let start = 0; start < payloads.length; start += size) {
      yield payloads.slice(start, start + size);
    }
  }

  /** Yield a payload with the current time for each signal. */
  async *timestampedPayloads() {
    for (let sent = 0; sent < this.jobs; sent++) {
      await readSignal();
      yield timestamped(process.hrtime.bigint());
    }
  }
}

/** Make a payload with a time. It is a string: a number of JavaScript cannot hold it. */
function timestamped(sent) {
  const number = String(sent);
  return { number, rest: payload(`${number}""`).rest };
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const pathInCalls = (kind) => join(process.env.BENCH_CALLS, `${process.pid}.${kind}`);

/**
 * Writes pairs of times, as pickup_log.py does. If jobs come at a rate, each pair is written at once,
 * so that a process that is killed loses none. At saturation they are written once per turn of the
 * event loop.
 */
class TimesLog {
  #file;
  #unwritten = [];
  #atOnce = options.ahead === undefined;

  constructor(kind) {
    this.#file = openSync(pathInCalls(kind), "a");
  }

  add(first, second) {
    this.#unwritten.push(BigInt(first), second);
    if (this.#atOnce) this.#write();
    else if (this.#unwritten.length === 2) setImmediate(() => this.#write());
  }

  #write() {
    writeSync(this.#file, BigInt64Array.from(this.#unwritten));
    this.#unwritten.length = 0;
  }
}

/** Counts the calls of the handlers in this process. */
export class CallCounter {
  #cells = new BigInt64Array(SLOTS * CELLS);
  #calls = 0;
  #sum = 0;
  #pickups = new TimesLog("pickup");

  constructor() {
    const file = openSync(pathInCalls("calls"), "w");
    writeSync(file, this.#cells);
    let written = 0;
    setInterval(() => {
      if (this.#calls === written) return;
      written = this.#calls;
      this.#cells[0] = BigInt(this.#calls);
      this.#cells[1] = BigInt(this.#sum);
      writeSync(file, this.#cells.subarray(0, CELLS), 0, CELLS * 8, 0);
    }, TICK);
  }

  handled(number) {
    if (this.#calls === 0) this.#cells[2] = process.hrtime.bigint();
    this.#calls += 1;
    this.#sum += number;
  }

  pickedUp(sent) {
    this.#pickups.add(sent, process.hrtime.bigint());
  }
}

/** Return one payload per job; the keys are used in turn. As in admit/handler.py, like the next. */
export const keyedPayloads = (task) =>
  task.payloads().map((job) => ({ ...job, key: `key-${job.number % task.options.keys}` }));

/** Counts the jobs of this process; logs when each began and ended if the task says so. */
export class KeyedHandler {
  #calls = new CallCounter();
  #began;
  #ended;
  #sleepMs;

  constructor(task) {
    if (!task.options.logged) return;
    [this.#began, this.#ended, this.#sleepMs] = [
      new TimesLog("began"),
      new TimesLog("ended"),
      task.sleepMs,
    ];
  }

  async handle(number) {
    this.#began?.add(number + 1, process.hrtime.bigint());
    this.#calls.handled(number);
    if (this.#sleepMs) await sleep(this.#sleepMs);
    this.#ended?.add(number + 1, process.hrtime.bigint());
  }
}

const OPENLY = 1000; // the same as in producer.py
const MOST_OPEN = 500;
const NS = 1_000_000_000;

/** Wait for the start signal, and enqueue jobs that carry their time: see producer.py. */
export async function produce(task, one, many) {
  await waitForStart();
  const { seconds, rate = 0, ahead = 0, per_call: size = 1 } = task.options;
  const began = process.hrtime.bigint();
  const passed = () => Number(process.hrtime.bigint() - began) / NS;
  if (!rate) return keepAhead(many, ahead, () => passed() < seconds);
  if (rate > OPENLY) throw new Error(`${rate} jobs/s: a Node producer sends at most ${OPENLY}`);
  const call = openCalls(size === 1 ? ([payload]) => one(payload) : many);
  for (let first = 0; first / rate <= seconds; first += size) {
    const early = first / rate - passed();
    if (early > 0) await sleep(early * 1000);
    call(size);
  }
}

/** Return a function that makes a call for so many jobs, and does not wait for its answer. */
function openCalls(enqueue) {
  const log = new TimesLog("sent");
  let open = 0;
  let failed = false;
  return async (size) => {
    if (open >= MOST_OPEN) return;
    open += 1;
    const payloads = timestampedNow(size);
    let answered = 0n;
    try {
      await enqueue(payloads);
      answered = process.hrtime.bigint();
    } catch (error) {
      if (!failed) console.error(`the first call that failed: ${error}`);
      failed = true;
    }
    for (const { number } of payloads) log.add(number, answered);
    open -= 1;
  };
}

const timestampedNow = (jobs) =>
  Array.from({ length: jobs }, () => timestamped(process.hrtime.bigint()));

/** Keep the line of the worker at this length. */
async function keepAhead(many, ahead, goesOn) {
  let sent = 0;
  while (goesOn()) {
    const due = countPickups() + ahead;
    if (due <= sent) {
      await sleep(1);
      continue;
    }
    await many(timestampedNow(due - sent));
    sent = due;
  }
}

/** Count the pickups of the workers, which are Node processes too: all their pairs are used. */
function countPickups() {
  const folder = process.env.BENCH_CALLS;
  const names = readdirSync(folder).filter((name) => name.endsWith(".pickup"));
  return names.reduce((sum, name) => sum + Math.floor(statSync(join(folder, name)).size / 16), 0);
}

/** Call the function that the command line names. */
export async function drive(verbs) {
  const [verb, text] = process.argv.slice(2);
  const all = { versions: async () => reply({ versions: { node: process.versions.node } }), ...verbs };
  await all[verb](new Task(JSON.parse(text)));
  reply({ done: true });
  process.exit(0);
}
