"""People as contestants: they read a run's translation word by word, buzz and answer, and every game is a trace.

people    what a person's buzz and answer are as a trace, what they are worth, and such a contestant for configs
journal   the games in SQLite
runs      the runs that are played on, made for one game or finished
table     one game under way: the clock, the words, the buzzes
server    the page and its requests (Starlette)
export    games as finished runs, and as a file of buzzes
"""
