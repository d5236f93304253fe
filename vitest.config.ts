import { defineConfig } from 'vitest/config'

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
          // They start servers, workers and commands of their own and wait for them: two files fill two cores.
          maxWorkers: 2,
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
    reporters: report === undefined ? ['default'] : ['default', 'json'],
    ...(report === undefined ? {} : { outputFile: { json: report } }),
  },
})
