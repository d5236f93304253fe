import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { cacheFolder, openCacheFolder } from '../../worker/cache-folder.js'

let place: string
beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), 'cache-folder-')))
})
afterEach(() => rmSync(place, { recursive: true }))

const open = () => openCacheFolder({ XDG_CACHE_HOME: place })

describe('the cache folder', () => {
  test.each([undefined, '', 'cache', './cache'])(
    'is below the home folder with XDG_CACHE_HOME=%j',
    (given) => {
      expect(cacheFolder({ XDG_CACHE_HOME: given })).toBe(join(homedir(), '.cache', 'connector'))
    },
  )

  test('is made for this user alone', () => {
    expect(open()).toBe(join(place, 'connector'))
    expect(statSync(open()).mode & 0o777).toBe(0o700)
  })

  test('that cannot be made is refused in one sentence, as with the HOME of another user', () => {
    writeFileSync(join(place, 'file'), '')
    const folder = join(place, 'file', 'home', 'connector')
    expect(() => openCacheFolder({ XDG_CACHE_HOME: join(place, 'file', 'home') })).toThrow(
      expect.objectContaining({
        name: 'CacheFolderError',
        message: `The cache folder ${folder} cannot be used (ENOTDIR).`,
        hint: 'Correct this, or set XDG_CACHE_HOME to a folder that only you can write to.',
        exitCode: 2,
      }),
    )
  })

  test('is refused where a group or everybody can write it', () => {
    for (const mode of [0o770, 0o707]) {
      chmodSync(open(), mode)
      expect(open).toThrow(/contains code to run, but other users can write to \S+connector\.$/)
      chmodSync(join(place, 'connector'), 0o755)
    }
    expect(open()).toBe(join(place, 'connector'))
  })

  test('is refused where others could put another one in its place', () => {
    const shared = join(place, 'shared')
    mkdirSync(shared)
    chmodSync(shared, 0o777)
    const openShared = () => openCacheFolder({ XDG_CACHE_HOME: join(shared, 'mine') })
    expect(openShared).toThrow(`other users can write to ${shared}.`)
    // As in /tmp: only the owner of a folder may rename or remove it.
    chmodSync(shared, 0o1777)
    expect(openShared()).toBe(join(shared, 'mine', 'connector'))
  })

  test('behind a link is the folder that was checked, and no shared one', () => {
    const real = join(place, 'real')
    mkdirSync(real, { mode: 0o700 })
    symlinkSync(real, join(place, 'connector'))
    expect(open()).toBe(real)
    chmodSync(real, 0o1777)
    expect(open).toThrow(`other users can write to ${real}.`)
  })

  test.runIf(process.getuid?.() === 0)('is refused where it belongs to another user', () => {
    chownSync(open(), 1234, 1234)
    expect(open).toThrow(/another user owns \S+connector\.$/)
  })
})
