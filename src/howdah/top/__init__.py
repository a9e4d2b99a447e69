"""Top: the queue in a terminal, live, with keys to steer it. The command is `howdah top`.

    pace.py       how often to look, so that looking costs next to nothing
    heart.py      what was seen last, and what went wrong while looking
    words.py      text of unknown origin made harmless; bars, trends, ages
    headline.py   the first two lines: the numbers, and the worst problem
    table.py      a table that fits its width and keeps its cursor
    table_*.py    one for each pane: types, running, workers, failures
    pane.py       one pane: its table, or what to do when it is empty
    deeds.py      what keys do to the queue: a question, and the act
    details.py    everything about one job, type or worker, as text
    dialogs.py    a question, an answer, the help
    main.py       the screen that holds it together
    app.py        the application

Comes after  observe/, which answers every question here

Everything but `pace.py`, `heart.py` and `deeds.py` needs textual, so nobody imports it before
the command runs.
"""
