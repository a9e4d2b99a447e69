// Driver of Graphile Worker.

import { drive, go, load, Tally, timed } from "../../driver.mjs";

const { Logger, makeWorkerUtils, run } = load("graphile-worker");

const LOT = 1000;
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
    const lots = [...task.lotsOf(LOT, task.payloads())];
    await utils.withPgClient((client) => client.query("select 1"));
    await timed(async () => {
      for (const lot of lots) {
        await utils.addJobs(lot.map((payload) => ({ identifier: "handle", payload })));
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
    const tally = new Tally();
    await go();
    const runner = await run({
      preset: { worker: { ...worker, connectionString: task.address, logger: quiet } },
      noHandleSignals: true,
      parsedCronItems: [],
      taskList: {
        handle: async (payload) => tally.handled(payload.number),
        pickup: async (payload) => tally.pickedUp(payload.number),
      },
    });
    await runner.promise;
  },

  async send(task) {
    const utils = await connect(task);
    await utils.withPgClient((client) => client.query("select 1"));
    await go();
    for await (const payload of task.moments()) await utils.addJob("pickup", payload);
  },
});
