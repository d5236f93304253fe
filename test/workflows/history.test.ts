import { expect, test } from 'vitest'
import { isHistoryLong } from '../../workflows/write-run/send-loop.ts'

test.each([
  [999, false, false],
  [1_000, false, true],
  [50, true, true],
])(
  'after %i events, with a new execution suggested by Temporal: %s, a recovery continues as new: %s',
  (historyLength, continueAsNewSuggested, expected) => {
    expect(isHistoryLong({ historyLength, continueAsNewSuggested }, { eventsPerExecution: 1_000 })).toBe(
      expected,
    )
  },
)
