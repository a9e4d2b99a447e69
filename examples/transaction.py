"""Transaction: enqueue a job in your own transaction.

Run it: python examples/transaction.py

`conn` is your own connection or session: asyncpg here; psycopg, SQLAlchemy and Django work too.
After a commit, workers see the order and the job. After a rollback, neither exists.
"""

from __future__ import annotations

import asyncio

import asyncpg

from howdah import Queue
from howdah.embedded import join


async def main() -> None:
    with join() as server:  # in your program: the DSN of your database
        queue = Queue(server.dsn)

        @queue.job
        async def confirm(order: int) -> str:
            return f"order {order} is confirmed"

        await queue.install()
        async with queue, queue.worker():
            connection = await asyncpg.connect(server.dsn)
            await connection.execute("create table if not exists orders (id int)")

            async with connection.transaction():
                await connection.execute("insert into orders values (1)")
                handle = await confirm.options(conn=connection).enqueue(order=1)
            print("committed:", await handle.result(timeout=30))

            try:
                async with connection.transaction():
                    await connection.execute("insert into orders values (2)")
                    await confirm.options(conn=connection).enqueue(order=2)
                    raise RuntimeError("the card was declined")
            except RuntimeError as error:
                print("rolled back:", error)

            jobs = await queue.jobs(job_type="confirm")
            print("orders with a job:", {job.data["order"] for job in jobs})
            await connection.execute("drop table orders")
            await connection.close()


if __name__ == "__main__":
    asyncio.run(main())
