import { DatabaseError } from 'pg'
import { expect, test } from 'vitest'
import { isStateAway } from '../../../core/state/errors.ts'
import { toPostgresError } from '../../../core/state/postgres/pool.ts'

const place = 'the schema connector_acc of db/state'
const secret = 'Key (key)=(sup_1 7 42) is in the row'

function ofCode(code: string) {
  const cause = Object.assign(new DatabaseError(secret, 0, 'error'), { code })
  return toPostgresError({ place, cause }) as Error & { retryable?: boolean }
}

test.for([
  ['08006', 'StateAwayError', true],
  ['57P01', 'StateAwayError', true],
  ['57P03', 'StateAwayError', true],
  ['53300', 'StateAwayError', true],
  ['25P03', 'StateAwayError', true],
  ['25P04', 'StateAwayError', true],
  ['53100', 'DiskFullError', false],
  ['25006', 'StateReadOnlyError', true],
  ['23505', 'KeyHeldError', false],
  ['40001', 'StateConflictError', true],
  ['40P01', 'StateConflictError', true],
  ['55P03', 'StateBusyError', true],
  ['57014', 'StateBusyError', true],
  ['28P01', 'StateRefusedError', false],
  ['3D000', 'StateRefusedError', false],
  ['42501', 'StateRefusedError', false],
] as const)('the SQLSTATE %s means %s, retryable: %s', ([code, name, retryable]) => {
  const error = ofCode(code)
  expect(error).toMatchObject({ name, retryable })
  // An answer in hand waits for what passes.
  expect(isStateAway(error)).toBe(retryable)
})

test('an error that may quote a row is told by its code alone', () => {
  for (const code of ['22021', '22P02', '23514', '54000', 'XX000'])
    expect(ofCode(code).message).toBe(
      `PostgreSQL failed on ${place} with the code ${code}; its log has the details.`,
    )
})

test('a server that takes no writes may be one that others fail over to, so the address is to be looked at', () => {
  expect(ofCode('25006').message).toContain('CONNECTOR_STATE_URL has to name the primary')
})

test('a connection that fails is a server that is away, with the reason of the first address', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED ::1:5432'), {
    code: 'ECONNREFUSED',
    syscall: 'connect',
  })
  for (const cause of [
    refused,
    new AggregateError([refused]),
    new Error('Connection terminated unexpectedly'),
    // What listens there is not PostgreSQL.
    new Error('There was an error establishing an SSL connection'),
  ])
    expect(toPostgresError({ place, cause })).toMatchObject({ name: 'StateAwayError', retryable: true })
  const { message } = toPostgresError({ place, cause: new AggregateError([refused]) }) as Error
  expect(message).toContain('ECONNREFUSED ::1:5432')
  const bug = new TypeError('x is not a function')
  expect(toPostgresError({ place, cause: bug })).toBe(bug)
})
