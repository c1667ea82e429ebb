"""People as contestants: they read a run's translation word by word, buzz and answer, and every game is a trace.

people    a person's buzz and answer as a trace, their score, and people as contestants in configs
journal   the games in SQLite
runs      runs to play on: finished ones, or made for one game
table     one game under way: clock, words and buzzes
server    the page and its requests (Starlette)
export    games as finished runs, and as a file of buzzes
"""
