import { DuckDBInstance } from '@duckdb/node-api'
import { inspect } from 'node:util'
import { DatabaseError } from 'pg'
import { expect, test } from 'vitest'
import { toDuckDbError } from '../../../core/destinations/duckdb/open.ts'
import { toPostgresError } from '../../../core/destinations/postgres/errors.ts'

const email = 'juan.soto@ejemplo.cl'

test.each([
  ['a unique column', 'email text unique', `('${email}'), ('${email}')`],
  ['a check', `email text check (email <> '${email}')`, `('${email}')`],
  ['another type', 'email integer', `('${email}')`],
])('what DuckDB says of a row that %s keeps out is told without the value', async (_, column, values) => {
  const connection = await (await DuckDBInstance.create(':memory:')).connect()
  await connection.run(`create table t (${column})`)
  const error = await connection.run(`insert into t select v from (values ${values}) s(v)`).then(
    () => expect.fail('was not refused'),
    (refused: Error) => refused,
  )
  expect(error.message).toContain(email)
  const told = toDuckDbError(error, { path: 'w.duckdb' }) as Error
  expect(told.message).toMatch(/^Rows can't be merged into w\.duckdb/)
  expect(told.message).not.toContain(email)
  connection.closeSync()
})

test.each([
  ['P0001', 'exec_stmt_raise'],
  ['23505', '_bt_check_unique'],
  ['22P02', 'pg_strtoint32_safe'],
  // A trigger's own code, as that of a locked table.
  ['45000', 'exec_stmt_raise'],
  ['55P03', 'exec_stmt_raise'],
])('what PostgreSQL says of a row (%s of %s) is told without the value', (code, routine) => {
  const error = Object.assign(new DatabaseError(`no ${email}`, 1, 'error'), { code, routine })
  const told = toPostgresError(error, { where: 'w', purpose: 'publish' }) as Error
  expect(told.message).toContain('w')
  expect(told.message).toContain(code.slice(0, 2))
  expect(told.message).not.toContain(email)
})

test.each(['42501', '54000', '55P03', '57014'])(
  'what PostgreSQL says beside its message (%s) is shown nowhere where it quotes a row',
  (code) => {
    const error = Object.assign(new DatabaseError('canceling statement', 1, 'error'), {
      code,
      detail: `Key (email)=(${email}) is there`,
      where: `COPY customers, line 2: "1,${email}"`,
    })
    const told = toPostgresError(error, { where: 'w', purpose: 'publish' })
    expect(told).toMatchObject({ message: expect.stringContaining('canceling statement') as string })
    expect(inspect(told, { depth: 10, showHidden: true })).not.toContain(email)
  },
)
