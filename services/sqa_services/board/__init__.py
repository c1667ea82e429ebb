"""An evaluation board in the manner of Dynabench: tasks, data sets, models, a queue of evaluations, a leaderboard.

    task.py       base class of tasks; sqa_task.py the built-in tasks; running.py runs and sessions as models
    metrics.py    get_<name>(predictions, targets), with unit, name and direction of each
    evaluate.py   predictions and labels -> scores, by tag too; perturbed and original -> paired differences
    files.py      data, submissions and predictions, in a folder or on S3
    storage.py    tables; queue.py the queue of evaluations; board.py registration, leaderboard, export
    permissions.py   callers, and what leaves the board
    accounts.py   invitations, accounts, tokens; lifecycle.py a model's log, withdrawal, deletion
    standing/     implausible submissions, views, rounded scores, Dynascore and rank
    worker.py     evaluates the queue
    server.py     HTTP; page/ the browser's page

Only storage, queue, board, accounts, lifecycle, standing and worker need SQLAlchemy, only server FastAPI.
"""
