"""An evaluation board modelled on Dynabench: tasks, data sets, models, a queue of evaluations and a leaderboard.

    task.py       base class of tasks; sqa_task.py the built-in tasks and runs as models
    metrics.py    get_<name>(predictions, targets), with unit, name and direction of each metric
    storage.py    tables and files; queue.py the queue of evaluations
    board.py      registration, models, leaderboard, export; rank.py Dynascore, rank and its intervals
    worker.py     the process that evaluates the queue
    server.py     HTTP interface; page/ the web page

Only server needs FastAPI.
"""
