import { defineConfig, type OxlintOverride } from 'oxlint'

// The rooms and the arrows between them. A room may import along its arrow and from itself, and nothing else;
// `types` rooms may be imported from with `import type` only.
const rooms = {
  workflows: {
    types: [
      'activities',
      'billing',
      'reading',
      'destinations',
      'changes',
      'state',
      'imports',
      'recoveries',
      'worker',
    ],
  },
  activities: {
    values: [
      'billing',
      'reading',
      'tables',
      'destinations',
      'changes',
      'imports',
      'recoveries',
      'state',
      'reports',
    ],
    types: ['workflows'],
  },
  imports: { values: ['tables', 'changes', 'billing', 'reports'] },
  recoveries: { values: ['tables', 'changes', 'reading', 'billing', 'state', 'reports'] },
  changes: { values: ['billing', 'reading', 'state', 'reports'] },
  reading: { values: ['billing'] },
  destinations: { values: ['tables', 'reports'] },
  tables: { types: ['billing'] },
  billing: {},
  state: {},
  reports: {},
  sandbox: {},
  worker: {
    values: [
      'activities',
      'billing',
      'reading',
      'tables',
      'destinations',
      'changes',
      'imports',
      'recoveries',
      'state',
    ],
    types: ['workflows'],
  },
  scripts: {
    values: [
      'billing',
      'reading',
      'tables',
      'destinations',
      'changes',
      'imports',
      'recoveries',
      'state',
      'worker',
      'sandbox',
    ],
    types: ['workflows', 'activities'],
  },
} as const satisfies Record<string, { values?: readonly string[]; types?: readonly string[] }>

const names = Object.keys(rooms)

function fence(room: string, arrows: { values?: readonly string[]; types?: readonly string[] }) {
  const values = new Set([room, ...(arrows.values ?? [])])
  const types = new Set(arrows.types ?? [])
  const closed = names.filter((name) => !values.has(name) && !types.has(name))
  const pattern = (to: Iterable<string>) => `^(\\.\\./)+(${[...to, 'test', 'bench'].join('|')})/`
  const patterns = [
    { regex: pattern(closed), message: `${room}/ may not import this room (docs/architecture.md, Rooms).` },
    ...(types.size === 0
      ? []
      : [
          {
            regex: `^(\\.\\./)+(${[...types].join('|')})/`,
            allowTypeImports: true,
            message: `${room}/ may import only types from this room (docs/architecture.md, Rooms).`,
          },
        ]),
    ...(room === 'workflows'
      ? [
          {
            regex: '^(node:|got$|zod$|kysely|csv-)',
            message: 'Workflows stay deterministic and small: no Node, no I/O.',
          },
        ]
      : []),
  ]
  const files = [`${room}/**/*.ts`]
  return { files, rules: { 'no-restricted-imports': ['error', { patterns }] } } satisfies OxlintOverride
}

export default defineConfig({
  plugins: ['typescript', 'unicorn', 'oxc', 'import', 'vitest', 'promise'],
  categories: { correctness: 'error', suspicious: 'error' },
  options: { typeAware: true },
  rules: {
    'import/no-cycle': 'error',
    'import/no-unassigned-import': 'off',
    // fast-check is known by its default export.
    'import/no-named-as-default-member': 'off',
    // expect(value, message)
    'vitest/valid-expect': ['error', { maxArgs: 2 }],
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/consistent-type-imports': 'error',
    'typescript/no-unsafe-type-assertion': 'off',
    'no-await-in-loop': 'off',
    'no-shadow': 'off',
    'no-underscore-dangle': 'off',
    'unicorn/consistent-function-scoping': 'off',
    // For windows of a browser; threads have no origin.
    'unicorn/require-post-message-target-origin': 'off',
    'promise/always-return': 'off',
    'vitest/require-mock-type-parameters': 'off',
    'vitest/no-conditional-expect': 'off',
    'vitest/expect-expect': 'off',
    'vitest/no-conditional-tests': 'off',
    'vitest/no-standalone-expect': 'off',
    eqeqeq: 'error',
    'max-lines': ['error', { max: 250, skipBlankLines: true, skipComments: true }],
  },
  overrides: [
    ...Object.entries(rooms).map(([room, arrows]) => fence(room, arrows)),
    { files: ['test/**/*.ts', 'bench/**/*.ts'], rules: { 'max-lines': 'off' } },
  ],
})
