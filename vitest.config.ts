import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/longest-first.ts'

const report = process.env['VITEST_JSON_REPORT']

const files = {
  all: 'test/**/*.test.ts',
  /** Hold to milliseconds or to a rate. */
  timed: 'test/**/*.timed.test.ts',
}

const common = {
  globalSetup: ['test/temporal-server.ts'],
  // Many tests start commands and servers of their own; a busy machine takes its time, and what has to be quick
  // says so itself.
  testTimeout: 120_000,
  hookTimeout: 120_000,
}

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...common,
          name: 'all but timed',
          include: [files.all],
          exclude: [files.timed],
          // To the SDK: workers in the test's own process run workflows in its main thread, which costs a quarter of the
          // time of a thread for each. Workers that are commands have one, as everywhere, and so have those of timed tests.
          env: { TEMPORAL_DEBUG: '1' },
          // They start servers, workers and commands of their own and wait for them: two files leave two cores idle for
          // a quarter of the time, four for a twentieth.
          maxWorkers: 4,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...common,
          name: 'timed',
          include: [files.timed],
          // One file at a time, with nothing beside it.
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
    sequence: { sequencer: LongestFirst },
    reporters: report === undefined ? ['default'] : ['default', 'json'],
    ...(report === undefined ? {} : { outputFile: { json: report } }),
  },
})
