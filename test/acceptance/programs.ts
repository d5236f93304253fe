import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

interface Program {
  /** Its names on PATH, best first. */
  names: readonly string[]
  /** The environment variable that names one outside PATH. */
  variable: string
  /** How to get it, as the end of "install it with". */
  install: string
  /** The acceptance tests that need it. */
  tests: string[]
  /** What it needs besides, for which CI may do without it. */
  needs?: string
}

/** Programs that acceptance tests use and npm does not install. */
const programs = {
  chromium: {
    names: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'],
    variable: 'CHROMIUM_PATH',
    install: 'apt-get install chromium',
    tests: ['test/acceptance/console/**', 'test/acceptance/report-page.test.ts'],
  },
  prometheus: {
    names: ['prometheus'],
    variable: 'PROMETHEUS_PATH',
    install: 'apt-get install prometheus',
    tests: ['test/acceptance/monitoring/**'],
  },
  promtool: {
    names: ['promtool'],
    variable: 'PROMTOOL_PATH',
    install: 'apt-get install prometheus',
    tests: ['test/acceptance/monitoring/**'],
  },
  pgbouncer: {
    names: ['pgbouncer'],
    variable: 'PGBOUNCER_PATH',
    install: 'apt-get install pgbouncer',
    tests: ['test/acceptance/state/**'],
  },
  go: {
    names: ['go'],
    variable: 'GO_PATH',
    install: 'apt-get install golang-go',
    tests: ['test/acceptance/deployment/**', 'test/acceptance/bucket/**', 'test/acceptance/state/**'],
  },
  podman: {
    names: ['podman'],
    variable: 'PODMAN_PATH',
    install: 'apt-get install podman runc catatonit netavark aardvark-dns debootstrap',
    tests: ['test/acceptance/image/**'],
    needs: 'root, and leave to make containers',
  },
} satisfies Record<string, Program>

/** @throws {Error} Where it is not installed. */
export function findProgram(name: keyof typeof programs): string {
  const path = locate(programs[name])
  if (path === undefined) throw new Error(`${name} is not installed: ${programs[name].install}`)
  return path
}

export const missingPrograms = (): Program[] =>
  Object.values(programs).filter((program) => locate(program) === undefined)

/** @throws {Error} Where the variable names no program. */
function locate({ names, variable }: Program): string | undefined {
  const named = process.env[variable]
  if (named && isExecutable(named)) return named
  if (named) throw new Error(`${variable} names ${named}, which is not a program.`)
  // Debian's servers are in /usr/sbin, which not everybody has on PATH.
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin']
  return folders.flatMap((folder) => names.map((name) => join(folder, name))).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
