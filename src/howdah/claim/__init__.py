"""Claim: take jobs from the line for one worker, and start them as slots become free.

claim.py           one claim, and what it does after a lost race
line.py            the job types of a worker, and which part of the line to scan next
buffer.py          claimed jobs that have not started
loop.py            the claim loop
rescan.py          scans again the part of a slow line that its marks skip
run_claims.py      claims what follows a job in its ordered key
unacknowledged.py  releases the jobs of a claim whose answer was lost
"""
