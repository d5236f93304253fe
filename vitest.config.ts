import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { missingPrograms } from './test/acceptance/programs.ts'

const report = process.env['VITEST_JSON_REPORT']

/** Tests that hold to milliseconds or to a rate: one file at a time, after all others. */
const timed = 'test/**/*.timed.test.ts'
const system = ['test/system/**/*.test.ts', 'test/chaos/histories/**/*.test.ts']
const acceptance = 'test/acceptance/**/*.test.ts'
const compose = 'test/acceptance/compose/**/*.test.ts'

/** `npm run test:long`: these tests wait more than they compute, and Vitest's cache has durations of `npm test`, without them. */
const areLong = process.argv.includes('--tags-filter=long')

/** A second, the default, is less than a busy machine may pause a process. */
const expect = { poll: { timeout: 30_000 } }

const withServer = {
  expect,
  globalSetup: ['test/temporal-server.ts'],
  setupFiles: ['test/without-promise-hooks.ts', 'test/explain-failures.ts'],
  // A busy machine takes its time; what has to be quick says so itself.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // To the SDK: a worker in the test's own process runs workflows in its main thread, which costs a quarter of the
  // time of a thread for each. Workers that are commands have a thread, as everywhere, and so have timed tests.
  env: { TEMPORAL_DEBUG: '1' },
  // A heap that begins small is collected in full every few seconds.
  execArgv: ['--initial-old-space-size=512', '--min-semi-space-size=16', '--no-memory-reducer'],
  // Their tests start servers, workers and commands and wait for them: two files at a time leave two cores idle for
  // a quarter of the time, four for a twentieth.
  maxWorkers: areLong ? 6 : 4,
}

/**
 * Small files that take long. In a fresh clone, which has no durations of an earlier run, large files begin first, and
 * all workers but one would wait for these at the end.
 */
const smallAndLong =
  /contract\/\w+\.test|(histories|crash|demo|disk|killed-while-checking|lost-server|outage|troubles|two-commands|duckdb[\w-]*|parquet|store-destination|state\/postgres|files-faults|compare|restored|compile-cache|package|operator|fleet-\w+|bucket\/faults|broken-code|drift|leases|leaks|local|certificate\.property)\.test/

/** How many tests of a file are tagged `long`. */
const longTests = ({ moduleId }: TestSpecification) =>
  readFileSync(moduleId, 'utf8').split("tags: ['long']").length

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const isLong = ({ moduleId }: TestSpecification) => Number(smallAndLong.test(moduleId))
    // oxlint-disable-next-line unicorn/no-array-sort -- `super` is not an array
    const sorted = await super.sort(files)
    const more = (a: TestSpecification, b: TestSpecification) => (areLong ? longTests(b) - longTests(a) : 0)
    return sorted.toSorted((a, b) => isLong(b) - isLong(a) || more(a, b))
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    // The message of a failed test is all that CI shows: `[ Array(1) ]` would not say what was found.
    chaiConfig: { truncateThreshold: 2_000 },
    // So that `npm test` takes minutes, and CI less than half an hour.
    tags: [
      {
        name: 'long',
        description: 'takes more than some three seconds on two cores: npm run test:long, and in CI',
      },
    ],
    projects: [
      {
        // No Temporal server, no child process, no database server: `npm run test:unit`.
        test: {
          name: 'unit',
          globalSetup: ['test/temporary-folder.ts'],
          include: ['test/**/*.test.ts'],
          exclude: [...system, acceptance, timed],
          expect,
          testTimeout: 60_000,
          // Its files leave nothing behind in their process, and loading every module again for each costs a third more.
          isolate: false,
          // On two cores, Vitest's own choice is one. With two, waits leave a sixth of the time idle.
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      // Real Temporal, HTTP, files and databases; needs nothing but Node, npm ci and the dev server.
      {
        test: {
          ...withServer,
          name: 'system',
          isolate: false,
          include: system,
          exclude: [timed],
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...withServer,
          name: 'timed',
          // As above. In processes of their own, also files of which nothing is to be run load every module.
          isolate: false,
          include: [timed],
          exclude: [acceptance],
          env: {},
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
      // A browser, Prometheus, Go, a package: `npm run test:acceptance`, which names what is missing.
      {
        test: {
          ...withServer,
          name: 'acceptance',
          include: [acceptance],
          exclude: [...missingPrograms().flatMap(({ tests }) => tests), compose],
          globalSetup: [
            'test/acceptance/report-missing.ts',
            'test/acceptance/bucket/versitygw.ts',
            ...withServer.globalSetup,
          ],
          // They wait more than they compute.
          maxWorkers: 6,
          sequence: { groupOrder: 3 },
        },
      },
      // docker-compose.yml in containers, as root: `npm run test:compose`.
      {
        test: {
          name: 'compose',
          globalSetup: ['test/acceptance/compose/images/set-up.ts'],
          include: [compose],
          testTimeout: 180_000,
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
    ],
    reporters: report === undefined ? ['default'] : ['default', 'json'],
    ...(report === undefined ? {} : { outputFile: { json: report } }),
  },
})
