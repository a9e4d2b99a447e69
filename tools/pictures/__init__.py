"""Pictures: the dashboard's pages as the docs show them, from a queue that is made for it.

    shop.py       a small shop's jobs, and workers at work on them
    past.py       a week of measures and a day of failures before now
    take.py       open each page in a browser and keep a picture of it

`make pictures` writes docs/pictures/.
"""
