"""An evaluation board in the manner of Dynabench: tasks, data sets, models, a queue of evaluations, a leaderboard.

    metrics.py    get_<name>(predictions, targets), with unit, name and direction of each
    evaluate.py   predictions and labels -> scores, by tag too; perturbed and original -> paired differences
    tags.py       the tags of a question
    task.py       what a task is; sqa_task.py the built-in one; running.py how a model that runs here answers
    files.py      data, submissions and predictions, in a folder or on S3
    storage.py    tables and their versions; queue.py the queue on them; board.py registration, leaderboard, export
    accounts.py   invitations, accounts, tokens; lifecycle.py a model's log, withdrawal, deletion
    standing/     implausible submissions, views, one number per model from several metrics, the rank
    worker.py     takes evaluations from the queue until none is left
    server.py     HTTP; page/ what a browser is shown

Only storage, queue, board, accounts, lifecycle, standing and worker need SQLAlchemy, only server FastAPI.
"""
