"""The block stack of this machine, its problems, and the script that would mend them. Nothing is changed.

python examples/problems_of_this_machine.py [TARGET]
"""

import sys

import spindle

target = sys.argv[1] if len(sys.argv) > 1 else None
print(spindle.inspect(target))
print()

problems = spindle.doctor(target)
for problem in problems:
    print(f"{problem.severity}: {problem.object}: {problem.summary}")
if not problems:
    print("no problems found")
else:
    print("\nThe remedies, to be read before they are run:\n")
    print(problems.fix_plan)
