"""Programs that are not in the image. They write files from the settings, the image's bill, and files for monitoring.

- ``helm``: what follows from the code in the Helm chart.
- ``prepare``: the two prepare scripts, and the package for spark-submit.
- ``render``: the texts of the files; no IO.
- ``manual``: the texts of the help, the completions, the page of man.
- ``systemd``: the units of all roles on a host without containers.
- ``image``: the image, the same from every build, its provenance, and the file that carries it.
- ``materials``: the bill of materials.
- ``monitoring``: the alerts for Prometheus and the dashboard for Grafana; no IO.
- ``docs``: the pages of docs/ that follow from the code; no IO.
- ``support``: the bundle for those who help.
- ``docker``: Compose on this VM.
"""
