"""Text: values made into text that is safe to store and to show.

reasons.py    errors and other values, as text that the database can keep
printable.py  text of unknown origin, made safe for a terminal or a log line
wording.py    lengths of time, ages, rates and priorities, as people read them
labels.py     how one job of a type is named in a list
"""
