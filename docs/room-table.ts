import { rooms } from '../oxlint.config.ts'

const list = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ')

/** The arrows between the rooms, from the data that the linter enforces. */
export function roomTable(): string {
  const rows = Object.entries(rooms).map(([room, { values = [], types = [] }]) => {
    const arrows = [values.length > 0 ? list(values) : '', types.length > 0 ? `types of ${list(types)}` : '']
    return `| \`${room}\` | ${arrows.filter(Boolean).join('; ') || 'nothing of ours'} |`
  })
  return ['| room | may import |', '| --- | --- |', ...rows].join('\n')
}
