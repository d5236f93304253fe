import { runCommandLine } from '../../../../scripts/command-line.ts'

// The real command line with commands that do one thing each, for the tests of what all commands share.
await runCommandLine({
  words: process.argv.slice(2),
  commands: {
    act: { summary: 'ends as it is told', load: async () => (await import('./act.ts')).configure },
    broken: { summary: 'cannot even be loaded', load: () => Promise.reject(new Error('was loaded')) },
  },
})
