"""A task runs a command, which says on its standard error what it does not like."""

import subprocess
from pathlib import Path
from tempfile import mkdtemp

import ray


@ray.remote(max_retries=0)
def unpack(folder, name):
    file = Path(folder, name)
    file.write_bytes(b"<html>404 Not Found</html>" if name == "part-2.gz" else b"")
    if file.stat().st_size:
        subprocess.run(["gzip", "--test", str(file)], check=True)
    return name


ray.init()
folder = mkdtemp(prefix="rk-parts-")
print(ray.get([unpack.remote(folder, f"part-{number}.gz") for number in range(4)]))
