import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SettingsError } from '../../worker/settings/environment.ts'
import { readSettings } from '../../worker/settings/settings.ts'

let cwd: string
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'env-file-'))
})
afterEach(() => rmSync(cwd, { recursive: true }))

const required = 'BILLING_BASE_URL=https://api.example.test\nBILLING_TOKEN=t0ken\nBILLING_WORKSPACE=acc_1\n'

function read(content: string | Uint8Array, env: Record<string, string> = {}) {
  writeFileSync(join(cwd, '.env'), content)
  return readSettings({ env, cwd })
}

function problemsOf(content: string | Uint8Array, env: Record<string, string> = {}): readonly string[] {
  try {
    read(content, env)
  } catch (error) {
    if (error instanceof SettingsError) return error.problems
    throw error
  }
  return []
}

const inUtf16 = (text: string, { bigEndian = false } = {}) => {
  const bytes = Buffer.from(`\ufeff${text}`, 'utf16le')
  return bigEndian ? bytes.swap16() : bytes
}
const inLatin1 = (text: string) => Buffer.from(text, 'latin1')
const asked = 'BILLING_TEST_MODE=true'

describe('a line of .env', () => {
  it.each<[string, string | Uint8Array]>([
    ['after a byte order mark', `\ufeff${asked}\r\n${required}`],
    ['in UTF-16, as Notepad and PowerShell save it', inUtf16(`${asked}\r\n${required}`)],
    ['in big-endian UTF-16', inUtf16(`${asked}\r\n${required}`, { bigEndian: true })],
    ['that ends with a carriage return', `${asked}\r${required}`],
    ['with export before it', `export ${asked}\n${required}`],
    ['with spaces around the equals sign', `  BILLING_TEST_MODE = true  \n${required}`],
    ['in double quotes', `BILLING_TEST_MODE="true"\n${required}`],
    ['in single quotes, before a comment', `BILLING_TEST_MODE='true'   # test only\n${required}`],
    ['before a comment', `BILLING_TEST_MODE=true # it's for a test\n${required}`],
    ['beside a comment in another encoding', inLatin1(`# producción: see Núñez\n${asked}\n${required}`)],
    ['after an empty one of the same name', `BILLING_TEST_MODE=\n${asked}\n${required}`],
    ['that says the same twice', `${asked}\n${asked}\n${required}`],
    [
      'beside variables of Docker Compose',
      `${asked}\nCONNECTOR_UID=1000\nCONNECTOR_VERSION=1.0\nCONNECTOR_STOP_SECONDS=30\nTEMPORAL_PORT=7233\n${required}`,
    ],
    ['beside variables of other programs', `${asked}\ncompose.project-name=x\n_x=$HOME\n${required}`],
  ])('%s is read', (_, content) => {
    expect(read(content).billing).toMatchObject({ testMode: true, workspace: 'acc_1' })
  })

  it.each<[string, string | Uint8Array, string]>([
    [
      'with a no-break space before its name',
      `\u00a0${asked}`,
      'Line 1 of <file> is neither blank, a comment nor NAME=value (it has the letter U+00A0); correct it.',
    ],
    ['with an invisible letter in its name', 'BILLING_\u200bTEST_MODE=true', '(it has the letter U+200B)'],
    [
      'with a byte order mark of a file pasted below another',
      `A=1\n\ufeff${asked}`,
      'Line 2 of <file> is neither blank, a comment nor NAME=value (it has the letter U+FEFF)',
    ],
    ['with a Cyrillic look-alike in its name', 'BILLING_TЕST_MODE=true', '(it has the letter U+0415)'],
    ['with a full-width equals sign', 'BILLING_TEST_MODE＝true', '(it has the letter U+FF1D)'],
    ['with a colon', 'BILLING_TEST_MODE: true', 'Line 1 of <file> is neither'],
    ['as PowerShell writes it', '$env:BILLING_TEST_MODE="true"', 'Line 1 of <file> is neither'],
    ['without an equals sign', 'BILLING_TEST_MODE true', 'Line 1 of <file> is neither'],
    [
      'with its name in lower case',
      'billing_test_mode=true',
      'billing_test_mode in <file> is not a setting; did you mean BILLING_TEST_MODE?',
    ],
    ['with hyphens in its name', 'billing-test-mode=true', 'did you mean BILLING_TEST_MODE?'],
    ['with one letter less', 'BILING_TEST_MODE=true', 'did you mean BILLING_TEST_MODE?'],
    ['with two letters wrong', 'BILLING_CONCURENZY=8', 'did you mean BILLING_CONCURRENCY?'],
    ['with the other word', 'BILLING_LIVE=false', 'did you mean BILLING_TEST_MODE?'],
    ['without a prefix', 'TEST_MODE=true', 'did you mean BILLING_TEST_MODE?'],
    ['with two letters swapped', 'BLILING_TEST_MODE=true', 'did you mean BILLING_TEST_MODE?'],
    ['with a slip in a name of Temporal', 'TEMPORAL_ADRESS=temporal:7233', 'did you mean TEMPORAL_ADDRESS?'],
    [
      'that is taken back below',
      `${asked}\nBILLING_TEST_MODE=`,
      'Lines 1 and 2 of <file> set BILLING_TEST_MODE to different values; remove one.',
    ],
    [
      'with a quote that is not closed',
      'BILLING_TEST_MODE="true',
      'The value of BILLING_TEST_MODE in line 1 of <file> has quotes that do not enclose all of it; put one pair around the whole value, or remove them.',
    ],
    [
      'with a quote that takes the next settings',
      `CONNECTOR_HASH_KEY="x\n${asked}\n# "`,
      'CONNECTOR_HASH_KEY in line 1 of <file> has quotes that do not enclose all of it',
    ],
    [
      'with a quote that is not opened',
      'CONNECTOR_DATA_DIR=./data"',
      'has quotes that do not enclose all of it',
    ],
    [
      'with text after a closing quote',
      `CONNECTOR_HASH_KEY="a"b`,
      'has quotes that do not enclose all of it',
    ],
    [
      'with two pairs of quotes',
      `CONNECTOR_DATA_DIR="'./data'"`,
      'begins with a quote that is part of the value',
    ],
    [
      'with a # that could be a comment',
      'BILLING_TOKEN=abc#def',
      'The value of BILLING_TOKEN in line 1 of <file> has a #; put the value into quotes, or a space before a comment.',
    ],
    [
      'that is joined to the one before, because that had no line break',
      `CONNECTOR_DATA_DIR=./data${asked}`,
      'The value of CONNECTOR_DATA_DIR in line 1 of <file> is followed by another NAME=',
    ],
    [
      'with an invisible letter in its value',
      'CONNECTOR_DATA_DIR=./data\u200b',
      'contains the invisible letter U+200B; remove it.',
    ],
    [
      'in UTF-16 without its mark',
      Buffer.from(asked, 'utf16le'),
      'The file <file> is not text; save it as UTF-8.',
    ],
    [
      'that only a shell would expand',
      'CONNECTOR_DATA_DIR=~/data',
      'begins with what only a shell replaces; write the path in full.',
    ],
  ])('%s is refused', (_, content, message) => {
    const problems = problemsOf(content).filter((problem) => !problem.includes('is not set'))
    expect(problems).toEqual([expect.stringContaining(message.replaceAll('<file>', join(cwd, '.env')))])
  })

  it('never shows its value', () => {
    const lines = [
      'BILLING_TOKEN: hunter2',
      'BILLING_TOKEN="hunter2',
      'BILLING_TOKEN=hunter2#',
      'hunter2',
      'WAREHOUSE_URL=“hunter2”',
    ]
    for (const line of lines) {
      expect(problemsOf(line).length).toBeGreaterThan(0)
      expect(problemsOf(line).join()).not.toContain('hunter2')
    }
  })

  it('may hold several keys in one pair of quotes', () => {
    const keys = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)].map((key) => key.toString('base64'))
    expect(
      read(`${required}CONNECTOR_PAYLOAD_KEY="${keys.join('\r\n')}"\nBILLING_TEST_MODE=true`),
    ).toMatchObject({
      payloadKeys: [{}, {}],
      billing: { testMode: true },
    })
  })

  it('keeps every letter of a value in quotes', () => {
    expect(read(`${required}CONNECTOR_DATA_DIR='/srv/Cliente #1 = "Núñez" \\n 50%'`).dataDir).toBe(
      '/srv/Cliente #1 = "Núñez" \\n 50%',
    )
  })
})

describe('a name in the environment', () => {
  it.each([
    ['Billing_Test_Mode', ''],
    ['BILLING_TEST_MODE\u200b', ' (it has the letter U+200B)'],
    ['ВILLING_ТЕSТ_МОDЕ', ' (it has the letter U+0412)'],
    ['BILLING_TEST_MOD', ''],
  ])('%s, which is a setting but for a letter, is refused', (name, odd) => {
    expect(problemsOf(required, { [name]: 'true' })).toEqual([
      `${name} in the environment${odd} is not a setting; did you mean BILLING_TEST_MODE?`,
    ])
  })

  it('of another program is left alone', () => {
    const env = {
      https_proxy: 'http://p',
      HTTP_PROXY: 'http://p',
      no_proxy: '*',
      PATH: '/bin',
      AWS_ENDPOINT_URL: 'https://s3',
      BILLING_DUCKDB: 'x',
      BILLING_PROXY: 'x',
      CONNECTOR_IMAGE: 'x',
      TOKEN: 'x',
    }
    expect(problemsOf(required, { ...env, AWS_MAX_ATTEMPTS: '1', TEMPORAL_TLS_SERVER_NAME: 'x' })).toEqual([])
  })
})

describe('a file with a secret', () => {
  it.each<[string, Uint8Array]>([
    ['a byte order mark', Buffer.from('\ufeffs3cret')],
    ['a line break', Buffer.from('s3cret\r\n')],
    ['UTF-16', inUtf16('s3cret\r\n')],
  ])('may have %s', async (_, content) => {
    writeFileSync(join(cwd, 'secret'), content)
    const files = { BILLING_TOKEN: '', BILLING_TOKEN_FILE: 'secret', CONNECTOR_HASH_KEY_FILE: 'secret' }
    const text = `${required.replace('BILLING_TOKEN=t0ken\n', '')}CONNECTOR_HASH_KEY_FILE=secret\n`
    const { billing, hashKey } = read(text, { ...files, INIT_CWD: cwd })
    expect([await billing.token(), await billing.token({ rejected: 'x' }), hashKey]).toEqual(
      Array(3).fill('s3cret'),
    )
  })

  it('is refused in another encoding, where two keys could be the same', () => {
    writeFileSync(join(cwd, 'key'), inLatin1('ñandú'))
    expect(problemsOf(`${required}CONNECTOR_HASH_KEY_FILE=key`)).toEqual([
      `CONNECTOR_HASH_KEY (not shown) in ${join(cwd, 'key')} contains bytes that are not UTF-8; save it as UTF-8.`,
    ])
  })
})

describe('a token in .env', () => {
  it('is read again when the service rejects it, without any other line', async () => {
    const { token, ...billing } = read(required).billing
    writeFileSync(
      join(cwd, '.env'),
      required.replace('t0ken', '"next" # since today').replace('acc_1', 'acc_2'),
    )
    expect(await token()).toBe('t0ken')
    expect(await token({ rejected: 't0ken' })).toBe('next')
    expect(billing.workspace).toBe('acc_1')
    writeFileSync(join(cwd, '.env'), 'BILLING_TOKEN: other')
    await expect(token({ rejected: 'next' })).rejects.toThrow(
      'does not hold a valid token; correct the token in it.',
    )
  })
})
