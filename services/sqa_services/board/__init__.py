"""An evaluation board modelled on Dynabench: tasks, data sets, models, a queue of evaluations and a leaderboard.

    task.py       base class of tasks; sqa_task.py the built-in tasks; running.py runs and sessions as models
    metrics.py    get_<name>(predictions, targets), with unit, name and direction of each metric
    evaluate.py   scores of predictions, also by tag; paired differences between perturbed and original data
    files.py      data, submissions and predictions, in a folder or on S3
    storage.py    tables; queue.py the queue of evaluations; board.py registration, leaderboard, export
    permissions.py   owners, submitters and their daily limit; lifecycle.py log and deletion of a model
    rank.py       Dynascore, rank and its intervals
    worker.py     the process that evaluates the queue
    server.py     HTTP interface; page/ the web page

Only storage, queue, board, permissions, lifecycle, rank and worker need SQLAlchemy.  Only server needs FastAPI.
"""
