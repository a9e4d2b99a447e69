"""Pictures: screenshots of the dashboard for the docs, from a queue with demo data.

    demo_shop.py     the jobs of a small shop, and workers that run them
    seed_history.py  a week of measures and a day of failures
    take.py          opens each page in a browser and saves a picture

`make pictures` writes docs/pictures/.
"""
