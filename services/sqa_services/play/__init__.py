"""People as contestants: they read a run's translation word by word, buzz and answer.  Every game becomes a trace.

people    a person's buzz and answer as a trace, their score, and people as contestants in configs
journal   the games in SQLite
runs      runs to play on: finished runs, or runs computed for one game
table     one game in progress: clock, words and buzzes
server    the page and its requests (Starlette)
export    games as finished runs, and as a file of buzzes
"""
