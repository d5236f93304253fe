import { describe, expect, test } from 'vitest'
import { createLogger, type LogLevel } from '../../worker/telemetry/log.ts'

function lines(options: { level?: LogLevel; format: 'json' | 'text' }) {
  const written: string[] = []
  const logger = createLogger({ level: 'info', ...options, write: (text) => written.push(text) })
  return { logger, written }
}

describe('a log', () => {
  test('is a JSON document a line, with the run as people know it and without what nobody looks for', () => {
    const { logger, written } = lines({ format: 'json' })
    const meta = { workflowId: 'export-1', workflowType: 'exportData', taskToken: 'x', attempt: 2 }
    logger.warn('Activity failed\nhere', { ...meta, error: new TypeError('no\nplace') })
    expect(written).toHaveLength(1)
    expect(written[0]).toMatch(/^[^\n]*\n$/)
    expect(JSON.parse(written[0] ?? '')).toEqual({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      level: 'warn',
      message: 'Activity failed\nhere',
      run: 'export-1',
      workflowType: 'exportData',
      attempt: 2,
      error: { name: 'TypeError', message: 'no\nplace' },
    })
  })

  test('says nothing of kinds of tasks that no worker here takes', () => {
    const { logger, written } = lines({ format: 'text' })
    logger.info('No Nexus services registered, not polling for Nexus tasks')
    logger.warn('No workflows registered, not polling for workflow tasks')
    expect(written).toEqual([])
  })

  test('for people is one line each, in which nothing speaks to the terminal', () => {
    const { logger, written } = lines({ format: 'text' })
    logger.info('published', { run: 'export-1', page: 12, said: 'red \u001b[31m\nINFO faked' })
    expect(written).toEqual([
      expect.stringMatching(
        /^\d\d:\d\d:\d\d INFO {2}published run=export-1 page=12 said=red \\u001b\[31m\\u000aINFO faked\n$/,
      ),
    ])
  })

  test('leaves out what is less than its level, and a run whose name has a slash keeps it', () => {
    const { logger, written } = lines({ format: 'json', level: 'warn' })
    logger.info('not told')
    logger.error('told', { workflowId: 'a/b', workflowType: 'importFile' })
    expect(written.map((line) => JSON.parse(line) as object)).toMatchObject([{ message: 'told', run: 'a/b' }])
  })
  test.each(['json', 'text'] as const)(
    'is written whatever its fields are, and they do not speak for it (%s)',
    (format) => {
      const { logger, written } = lines({ format })
      const circle: { self?: object } = {}
      circle.self = circle
      logger.info('read', { circle, counts: { rows: 1n }, level: 'error', message: 'other', page: 12 })
      const [line = ''] = written
      if (format === 'json')
        expect(JSON.parse(line)).toMatchObject({ level: 'info', message: 'read', page: 12 })
      else expect(line).toMatch(/INFO {2}read .*page=12\n$/)
    },
  )
})
