"""Runs a command and prints what it cost: seconds, CPU seconds with all its children, MB of the largest process."""
import json, resource, subprocess, sys, time

started = time.monotonic()
code = subprocess.run(sys.argv[2:], stdout=open(sys.argv[1], "w"), check=False).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({
    "code": code,
    "seconds": time.monotonic() - started,
    "cpuSeconds": used.ru_utime + used.ru_stime,
    "peakMb": used.ru_maxrss / 1024,
}))
