import { importPromises } from './import-promises.ts'

/** A promise of the README and what shows it. */
export interface Promised {
  promise: string
  /** Beginnings of titles of tests, or of groups of tests, as the file has them. */
  tests: Readonly<Record<string, readonly string[]>>
  /** Commands that try it harder. */
  harder?: readonly string[]
}

/** The promises of the README under the headings of docs/evidence.md. */
export const promises: Readonly<Record<string, readonly Promised[]>> = {
  'Exports prove that they are complete': [
    {
      promise: 'A proven read has every record that was there throughout, exactly once.',
      tests: {
        'test/core/reading/proof.test.ts': [
          'holds every record that was there throughout, once, whatever the list does and wherever it crashes',
        ],
        'test/core/reading/read-list.test.ts': [
          'a record that slides past two sweeps in a row is taken',
          'a read notices records that are removed after paging',
          'an ordering that is ignored is seen',
        ],
        'test/core/reading/stale.test.ts': ['a response that is older than the read'],
      },
      harder: ['READ_RUNS=20000 npx vitest run --project unit test/core/reading/proof.test.ts'],
    },
    {
      promise: 'The same holds for a long list that is read in ranges, whatever the bounds are.',
      tests: {
        'test/core/reading/ranges.property.test.ts': [
          'holds every record that was there throughout, once, whatever the bounds, the list and its crashes do',
        ],
        'test/core/reading/ranges.test.ts': [
          'a last page that lacks a record starts no range',
          'a record without a readable created is kept once, however many ranges meet it',
          'above all records, where the newest are one group',
          'promises what the server of any range could show that was furthest behind',
        ],
      },
      harder: ['npm run chaos -- --only ranges --rounds 20000'],
    },
    {
      promise: 'Those tests would notice: careless ways to read are each caught.',
      tests: {
        'test/core/reading/proof.test.ts': ['the same property finds what is lost'],
        'test/core/reading/ranges.property.test.ts': ['the same property finds'],
      },
    },
    {
      promise: 'A read that cannot be proven is published as unproven, with its reasons.',
      tests: {
        'test/core/reading/unproven.test.ts': [
          'a read that is not proven claims nothing about what it did not see',
        ],
        'test/system/export/unproven-command.test.ts': [
          'an export that ends at its cap claims nothing: not in the terminal, with --json, in the manifest or in _exports',
        ],
      },
    },
    {
      promise: 'Killed processes lose nothing: the result is equal to the byte.',
      tests: {
        'test/system/export/kills.test.ts': [
          'an export is proven and equal to the byte after SIGKILLs of the worker at random moments',
        ],
        'test/system/export/crash.test.ts': [
          'is proven after a SIGKILL of the Temporal server, whose database is on disk',
          'resumes under the same command after a SIGKILL of everything under --local',
        ],
        'test/system/export/frozen-worker.test.ts': [
          'a worker that is stopped in the middle of a read, given up on and woken again, mixes nothing',
        ],
        'test/core/exports/kept-chunks.test.ts': [
          'attempts that resume one another have checkpoints that sort in that order',
        ],
      },
      harder: [
        'KILLS=50 npm run test:soak -- export/kills',
        'npm run chaos -- --only histories --job export',
      ],
    },
    {
      promise: 'Nothing falls between two incremental exports.',
      tests: {
        'test/system/export/nothing-lost-between-runs.test.ts': [
          'what changed between two incremental exports is in the second',
        ],
        'test/core/exports/watermark.test.ts': ['so that no change falls between two incremental exports'],
        'test/core/reading/incremental.test.ts': [
          'takes all of it, and costs no more than its part of the list',
        ],
      },
    },
    {
      promise:
        'A warehouse marks only what a proven read shows to be gone, and no older read moves a pointer.',
      tests: {
        'test/core/destinations/warehouse-deletes.ts': [
          'are not marked after a read that is',
          'are not marked after a proven read that',
          'are not marked, %i of %i, where %s are allowed: the rest is published, with a warning',
        ],
        'test/core/destinations/parquet.test.ts': [
          'moves its links to the newest read, and never back to an older one that is published late',
          'never says that a run is published whose file someone cut short',
        ],
      },
    },
    {
      promise: 'In a bucket, no manifest is wrong and no pointer goes back, whatever gets lost.',
      tests: {
        'test/acceptance/bucket/faults.test.ts': [
          'no manifest is wrong and no pointer goes back when answers are 503 or lost and the bucket is away',
        ],
      },
      harder: ['npm run chaos -- --only bucket'],
    },
    {
      promise: 'Every digit arrives as it was sent.',
      tests: {
        'test/core/billing/lossless-json.test.ts': ['writes every number back digit for digit'],
        'test/core/tables/row-encoder.test.ts': [
          'never loses a value, whatever kind of JSON stands in whatever field',
        ],
        'test/core/destinations/contract.ts': ['keeps the decimal %s exact in its column'],
      },
      harder: ['npm run bench:peers'],
    },
    {
      promise: 'The proof costs 1.16 requests per 100 records at most.',
      tests: {
        'test/core/reading/costs.test.ts': [
          'a quiet list costs at most 1.154 requests for every 100 records',
        ],
      },
    },
  ],
  'Imports make each row once': importPromises,
  'Recoveries stay within their bounds': [
    {
      promise:
        'A recovery previews, asks, begins with a canary, stops when too many fail, and keeps its caps.',
      tests: {
        'test/system/recovery/control.test.ts': [
          'shows what it would do, waits, and resumes only after somebody approved',
        ],
        'test/system/recovery/bounds.test.ts': [
          'the canary of each reason',
          'the breaker of each reason',
          'the bounds of a run',
        ],
      },
    },
    {
      promise: 'Kills leave no subscription resumed too often, and none in doubt.',
      tests: {
        'test/system/recovery/attempts.test.ts': [
          'a recovery whose worker is killed sends no subscription more resumes than attempts',
        ],
        'test/core/changes/reconcile.test.ts': [
          'a resume %s and that had no lasting effect is sent again only when its first request cannot be on its way any more',
        ],
        'test/system/recovery/kills.test.ts': [
          'a recovery of ${chaos.candidates} whose worker is killed ends each in one outcome that the service agrees with',
        ],
      },
      harder: ['KILLS=20 RECOVERY_CANDIDATES=10000 RECOVERY_RATE=300 npm run test:soak -- recovery/kills'],
    },
    {
      promise: 'The rate is kept, by one worker and by several together.',
      tests: {
        'test/system/recovery/rate.timed.test.ts': [
          'uses its rate, and never exceeds it by more than one request in any second',
        ],
        'test/chaos/rate/rate.timed.test.ts': [
          'workers that are frozen and killed send at most r + 1 requests in any second together',
        ],
        'test/core/billing/rate-limit.timed.test.ts': [
          'lets no more than its rate leave in any second, however late the timers are',
        ],
      },
      harder: ['npm run chaos -- --only rate'],
    },
  ],
  'Nobody gets more than they were given': [
    {
      promise: 'Crafted inputs of steps reach no file and no run of another.',
      tests: {
        'test/system/security/crafted-steps.test.ts': [
          '%s, called by somebody who reaches Temporal alone, reads and writes nothing outside the data folder',
        ],
        'test/core/exports/close.test.ts': ['an export is not closed with %s, and nothing is written'],
        'test/core/exports/kept-chunks.test.ts': ['attempts that resume one another'],
      },
    },
    {
      promise: 'No row, secret or personal value leaves the data folder.',
      tests: {
        'test/system/security/leaks.test.ts': [
          'no token, password or personal data gets into Temporal, logs, reports or metrics, whatever is run',
        ],
        'test/system/security/encrypted.test.ts': [
          'with a key, Temporal keeps nothing that people typed or that a record holds, and every command works',
        ],
      },
    },
  ],
}
