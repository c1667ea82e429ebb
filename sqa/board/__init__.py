"""An evaluation board in the manner of Dynabench: tasks, data sets, models, a queue of evaluations, a leaderboard.

    metrics.py    get_<name>(predictions, targets), with unit, name and direction of each
    dynascore.py  one number per model from several metrics
    evaluate.py   predictions and labels -> scores, by tag too; perturbed and original -> paired differences
    perturb.py    changed copies of questions; perturb_words.py holds their tables
    tags.py       what a question is called in the breakdown by tag
    task.py       what a task is; sqa_task.py the built-in one
    files.py      data, submissions and predictions, in a folder or on S3
    storage.py    tables; queue.py the queue on them; board.py registration, leaderboard, export
    worker.py     takes evaluations from the queue until none is left
    server.py     HTTP; page/ what a browser is shown

Only storage, queue, board, worker (SQLAlchemy) and server (FastAPI) need the extra `board`.
"""
