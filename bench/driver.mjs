// Driver: what the drivers of the Node peers share. It has the protocol of driver.py and writes
// the files of call_counter.py.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { openSync, writeSync } from "node:fs";
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

const { holds = false } = JSON.parse(process.argv[3] ?? "{}");
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
      // As a string: a number of JavaScript cannot hold it.
      yield { ...payload(0), number: String(process.hrtime.bigint()) };
    }
  }
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Counts the calls of the handlers in this process. */
export class CallCounter {
  #cells = new BigInt64Array(SLOTS * CELLS);
  #calls = 0;
  #sum = 0;
  #pickups = 0;

  constructor() {
    const path = (kind) => join(process.env.BENCH_CALLS, `${process.pid}.${kind}`);
    const file = openSync(path("calls"), "w");
    writeSync(file, this.#cells);
    this.#pickups = openSync(path("pickup"), "w");
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
    const now = process.hrtime.bigint();
    writeSync(this.#pickups, BigInt64Array.of(BigInt(sent), now));
  }
}

/** Call the function that the command line names. */
export async function drive(verbs) {
  const [verb, text] = process.argv.slice(2);
  const all = { versions: async () => reply({ versions: { node: process.versions.node } }), ...verbs };
  await all[verb](new Task(JSON.parse(text)));
  reply({ done: true });
  process.exit(0);
}
