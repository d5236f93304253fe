import { defineConfig, type OxlintOverride } from 'oxlint'

/**
 * The rooms and the arrows between them, from the doors down to the ground. A room imports along its arrows and from
 * itself, and nothing else: `values` lists the rooms it may import anything from, `types` those it may import only
 * types from.
 */
const rooms: Record<string, { values?: readonly string[]; types?: readonly string[] }> = {
  workflows: { values: ['core/runs/view'], types: ['core', 'activities'] },
  activities: { values: ['core'] },
  worker: { values: ['core', 'activities'] },
  scripts: { values: ['core', 'worker', 'sandbox'], types: ['workflows', 'activities'] },

  'core/exports': {
    values: [
      'core/reading',
      'core/tables',
      'core/destinations',
      'core/billing',
      'core/state',
      'core/runs',
      'core/storage',
    ],
  },
  'core/imports': {
    values: [
      'core/changes',
      'core/reading',
      'core/tables',
      'core/billing',
      'core/state',
      'core/runs',
      'core/storage',
    ],
  },
  'core/recoveries': {
    values: [
      'core/changes',
      'core/reading',
      'core/tables',
      'core/billing',
      'core/state',
      'core/runs',
      'core/storage',
    ],
  },
  'core/schedules': {
    values: ['core/exports', 'core/recoveries', 'core/tables', 'core/billing', 'core/runs'],
  },
  'core/notifications': { values: ['core/billing', 'core/runs/view'], types: ['core/runs'] },

  'core/changes': { values: ['core/billing', 'core/reading', 'core/state', 'core/runs', 'core/storage'] },
  'core/destinations': { values: ['core/reading', 'core/tables', 'core/storage', 'core/runs'] },
  'core/tables': { values: ['core/billing'] },
  'core/reading': { values: ['core/billing'] },

  'core/runs': { values: ['core/storage'], types: ['core/state'] },
  'core/runs/view': {},
  'core/billing': {},
  'core/state': { values: ['core/storage', 'core/runs/view'] },
  'core/storage': {},

  sandbox: {},
}

const isWithin = (room: string, names: readonly string[]) =>
  names.some((name) => room === name || room.startsWith(`${name}/`))

/** How a file of `from` names a file of `to`: relative, and inside core without `core/`. */
function pattern(from: string, to: readonly string[]): string {
  const inside = (name: string) => (from.startsWith('core/') ? name.replace(/^core\//, '') : name)
  // A room that contains another one is only its own files.
  const hasRooms = (name: string) => Object.keys(rooms).some((other) => other.startsWith(`${name}/`))
  const paths = to.map((name) => `${inside(name)}/${hasRooms(name) ? '[^/]+$' : ''}`)
  return `^(\\.\\./)+(${paths.join('|')})`
}

function fence(room: string, arrows: { values?: readonly string[]; types?: readonly string[] }) {
  const { values = [], types = [] } = arrows
  const others = Object.keys(rooms).filter((name) => name !== room && !isWithin(name, values))
  const typesOnly = others.filter((name) => isWithin(name, types))
  const closed = [...others.filter((name) => !isWithin(name, types)), 'test', 'bench']
  const patterns = [
    {
      regex: pattern(room, closed),
      message: `${room}/ may not import this room (docs/architecture.md, Rooms).`,
    },
    ...(typesOnly.length === 0
      ? []
      : [
          {
            regex: pattern(room, typesOnly),
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
    ...(room.startsWith('core/')
      ? [
          {
            regex: '^@temporalio/',
            message: 'core/ knows nothing of Temporal (docs/architecture.md, Rooms).',
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
    'import/no-cycle': ['error', { ignoreTypes: false }],
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
    'max-lines': ['error', { max: 400, skipBlankLines: true, skipComments: true }],
  },
  overrides: [
    ...Object.entries(rooms).map(([room, arrows]) => fence(room, arrows)),
    { files: ['test/**/*.ts', 'bench/**/*.ts'], rules: { 'max-lines': 'off' } },
  ],
})
