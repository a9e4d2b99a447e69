// Driver of Graphile Worker.

import { CallCounter, drive, load, timed, waitForStart } from "../../driver.mjs";

const { Logger, makeWorkerUtils, run } = load("graphile-worker");

const ENQUEUE_BATCH = 1000;
const quiet = new Logger(() => () => {});

const worker = {
  concurrentJobs: 100,
  localQueue: { size: 2000 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
  preparedStatements: true,
};

const connect = (task) => makeWorkerUtils({ connectionString: task.address, logger: quiet });

await drive({
  async install(task) {
    await (await connect(task)).migrate();
  },

  async enqueue_bulk(task) {
    const utils = await connect(task);
    const batches = [...task.batchesOf(ENQUEUE_BATCH, task.payloads())];
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
      preset: { worker: { ...worker, connectionString: task.address, logger: quiet } },
      noHandleSignals: true,
      parsedCronItems: [],
      taskList: {
        handle: async (payload) => calls.handled(payload.number),
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
});
