// Driver of Graphile Worker: a named queue per key. Its jobs run one at a time and in order.

import { drive, keyedPayloads, KeyedHandler, load, timed, waitForStart } from "../../driver.mjs";

const { Logger, makeWorkerUtils, run } = load("graphile-worker");

const quiet = new Logger(() => () => {});

const worker = (options) => ({
  concurrentJobs: options.concurrent_jobs,
  ...(options.poll_ms && { pollInterval: options.poll_ms }),
  ...(options.local_queue && { localQueue: { size: options.local_queue } }),
  completeJobBatchDelay: options.complete_delay_ms,
  failJobBatchDelay: options.complete_delay_ms,
  preparedStatements: true,
});

const connect = (task) => makeWorkerUtils({ connectionString: task.address, logger: quiet });

await drive({
  async install(task) {
    await (await connect(task)).migrate();
  },

  async enqueue_bulk(task) {
    const utils = await connect(task);
    const batches = [...task.batchesOf(task.options.enqueue_batch, keyedPayloads(task))];
    await timed(async () => {
      for (const batch of batches) {
        await utils.addJobs(
          batch.map((payload) => ({ identifier: "handle", payload, queueName: payload.key })),
        );
      }
    });
  },

  async enqueue_single(task) {
    const utils = await connect(task);
    const payloads = keyedPayloads(task);
    await timed(async () => {
      for (const payload of payloads) {
        await utils.addJob("handle", payload, { queueName: payload.key });
      }
    });
  },

  async work(task) {
    const handler = new KeyedHandler(task);
    await waitForStart();
    const runner = await run({
      preset: { worker: { ...worker(task.options), connectionString: task.address, logger: quiet } },
      noHandleSignals: true,
      parsedCronItems: [],
      taskList: { handle: (payload) => handler.handle(payload.number) },
    });
    await runner.promise;
  },
});
