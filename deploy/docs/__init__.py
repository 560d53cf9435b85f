"""The pages of docs/ that follow from the code; no IO but in ``__main__``. ``python -m deploy.docs`` writes them.

- ``alerts``: what each alert means, and what to do.
- ``commands``: the help of each command.
- ``figures``: the picture of the rates.
- ``markdown``: texts of the code as Markdown.
- ``metrics``: each metric.
- ``states``: the drawings of the states of a lane and of a copy, for two other pages.
- ``variables``: each variable of setenv.sh.
"""
