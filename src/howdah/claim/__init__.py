"""Claim: take jobs from the line for one worker, and start them as slots become free.

claim.py           one claim: the calls, and what a lost race means
line.py            the job types of a worker, and where it left off in each lane
buffer.py          claimed jobs that have not started
loop.py            the claim loop
rescan.py          scans again the part of a slow line that its marks skip
unacknowledged.py  releases jobs of a claim whose answer was lost
"""
