"""Top: the live view of the queue in a terminal, with keys that change it. `howdah top` runs it.

    app.py             the application, and how it ends
    main.py            the main screen: headline, four panes, keys
    details.py         the screen with everything about one job, type or worker
    live_screen.py     the base of both screens: polls again and again, runs actions
    poller.py          reads the queue when it is due, and keeps the last snapshot
    throttle.py        decides how often to poll, so that polling costs at most 2 %
    key_bindings.py    what each key does on each kind of row
    actions.py         what a key does to the queue: a question, the call, the result
    dialogs.py         the dialogs: a question, a text, the help
    detail_text.py     a job, a type, a worker or the problems as text
    headline.py        the first two lines: the numbers, and the worst problem
    pane.py            one pane: a table, or a hint if it is empty
    hints.py           the texts of empty panes
    table.py           a table that fits its width and keeps its cursor
    table_types.py     the table of job types
    table_running.py   the table of running jobs
    table_workers.py   the table of workers
    table_failures.py  the table of failures, grouped by error
    formatting.py      printable text, styles, bars, trends, short numbers

Everything shown is read by observe/. Textual is an extra: import this package only when the
command runs.
"""
