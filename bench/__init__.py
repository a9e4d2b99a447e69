"""Bench: measure howdah, alone and against other job queues. README.md says how to run it.

compare.py         measure howdah and its peers: `make bench`
tune.py            find the best settings of each peer again
quick/             compare the working tree with a commit: `make bench-quick`
stress/            peers under the same stresses: `make bench-stress`
admit/             keys, order, limits and rates, and peers that have them: `make bench-admit`
adverse/           measure with disturbances: `make bench-adverse`
growth/            measure how cost grows: `make bench-growth`
memory.py          the size of workers and producers: `make bench-memory`
upkeep_delays.py   how late delayed jobs are claimed: `make bench-delays`
observe_dashboard.py  the cost of open pages: `make bench-dashboard`

workloads.py       the workloads of compare and quick
measure/           one measurement of a workload
peer.py            the description of a job queue
peers/             howdah and the job queues that it is compared with
install.py         the environments of the peers
resources.py       the servers and environments of a run, and one measurement
command_line.py    options of the command line
driver.py          the peer's side of a driver
producer.py        enqueue jobs at a rate, or as fast as they run
driver_process.py  the benchmark's side of a driver
call_counter.py    the calls of handlers
pickup_log.py      when each job was sent, and when its handler began
table_samples.py   dead rows and sizes over time, and what the server's sessions do
turns.py           the order of the measurements
aggregate.py       medians and percentiles
interval.py        the 95 % interval of a median
record.py          the results of compare
report.py          the report of compare
bar_chart.py       the chart of compare
targets.py         the ratios that howdah has to reach
table.py           the table in the README

cases.py           run the cases of adverse, growth, memory, delays and dashboard
testbed.py         the database of a case, and its processes
case_driver.py     what runs in those processes
sample_jobs.py     the jobs of the cases
cpu_time.py        the CPU time of the server
memory_usage.py    the memory of a process
viewers.py         open pages of the dashboard
case_record.py     the results of the cases
line_chart.py      the charts of the cases
limits.py          the values in docs/guides/limits.md

server.py          a private PostgreSQL
redis.py           a private Redis
machine.py         the description of the machine
progress.py        lines about the run, on stderr
"""
