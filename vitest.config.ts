import { defineConfig } from 'vitest/config'

const report = process.env['VITEST_JSON_REPORT']

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/temporal-server.ts'],
    // One file at a time: they start servers, workers and commands of their own, which fill two cores, and some
    // hold to seconds what has to be quick.
    maxWorkers: 1,
    // Many tests start commands and servers of their own; a busy machine takes its time, and what has to be quick
    // says so itself.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: report === undefined ? ['default'] : ['default', 'json'],
    ...(report === undefined ? {} : { outputFile: { json: report } }),
  },
})
