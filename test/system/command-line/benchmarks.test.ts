import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const folder = join(import.meta.dirname, '../../../bench')
const call = (name: string, ...words: string[]) =>
  spawnSync(process.execPath, [join(folder, 'bench.ts'), name, ...words], { encoding: 'utf8' })

test.each(['export', 'import', 'peers', 'start'])(
  'the benchmark %s names each of its options, and says which it does not have',
  (name) => {
    const options = readFileSync(join(folder, `${name}.ts`), 'utf8').matchAll(/^ {2}(\w+): \{ type: /gm)
    const help = call(name, '--help')
    expect(help).toMatchObject({ status: 0, stderr: '' })
    for (const [, option] of options) expect(help.stdout).toContain(`--${option}`)
    expect(call(name, '--customer', '5')).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(/^Unknown option '--customer'.*\nSee --help\.\n$/),
    })
  },
)
