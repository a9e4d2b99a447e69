"""Top: the queue in a terminal, live, with keys to steer it. The command is `howdah top`.

    pace.py       how often to look, so that looking costs next to nothing
    heart.py      what was seen last, and what went wrong while looking
    words.py      text of unknown origin made harmless; bars, trends, ages
    headline.py   the first two lines: the numbers, and the worst problem
    table.py      a table that fits its width and keeps its cursor
    table_*.py    one for each pane: types, running, workers, failures
    pane.py       one pane: its table, or a hint of hints.py when it is empty
    deeds.py      what keys do to the queue: a question, the act, what was moved
    about.py      everything about one job, type or worker, as text
    dialogs.py    a question, an answer, the help
    board.py      a screen that looks again and again; main.py and details.py are two
    wants.py      what each key means over each kind of row
    app.py        the application, and how it ends

Comes after  observe/, which answers every question here

Textual is an extra, so nobody imports this before the command runs.
"""
