// Driver of Graphile Worker.

import { CallCounter, drive, load, produce, sleep, timed, waitForStart } from "../../driver.mjs";

const { Logger, makeWorkerUtils, run } = load("graphile-worker");

const quiet = new Logger(() => () => {});

const worker = (options) => ({
  concurrentJobs: options.concurrent_jobs,
  localQueue: { size: options.local_queue },
  completeJobBatchDelay: options.complete_delay_ms,
  failJobBatchDelay: options.complete_delay_ms,
  preparedStatements: true,
});

const connect = (task, more = {}) =>
  makeWorkerUtils({ connectionString: task.address, logger: quiet, ...more });

await drive({
  async install(task) {
    await (await connect(task)).migrate();
  },

  async enqueue_bulk(task) {
    const utils = await connect(task);
    const batches = [...task.batchesOf(task.options.enqueue_batch, task.payloads())];
    await utils.withPgClient((client) => client.query("select 1"));
    await timed(async () => {
      for (const batch of batches) {
        await utils.addJobs(batch.map((payload) => ({ identifier: "handle", payload })));
      }
    });
  },

  async enqueue_single(task) {
    const utils = await connect(task);
    const payloads = task.payloads();
    await utils.withPgClient((client) => client.query("select 1"));
    await timed(async () => {
      for (const payload of payloads) await utils.addJob("handle", payload);
    });
  },

  async work(task) {
    const calls = new CallCounter();
    await waitForStart();
    const runner = await run({
      preset: { worker: { ...worker(task.options), connectionString: task.address, logger: quiet } },
      noHandleSignals: true,
      parsedCronItems: [],
      taskList: {
        handle: async (payload) => {
          calls.handled(payload.number);
          if (task.sleepMs) await sleep(task.sleepMs);
        },
        pickup: async (payload) => calls.pickedUp(payload.number),
      },
    });
    await runner.promise;
  },

  async send(task) {
    const utils = await connect(task);
    await utils.withPgClient((client) => client.query("select 1"));
    await waitForStart();
    for await (const payload of task.timestampedPayloads()) await utils.addJob("pickup", payload);
  },

  async produce(task) {
    const utils = await connect(task, { maxPoolSize: task.options.producer_connections });
    await utils.withPgClient((client) => client.query("select 1"));
    await produce(
      task,
      (payload) => utils.addJob("pickup", payload),
      (payloads) => utils.addJobs(payloads.map((payload) => ({ identifier: "pickup", payload }))),
    );
  },
});
