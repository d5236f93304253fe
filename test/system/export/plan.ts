import type { ExportPlan } from '../../../core/exports/plan.ts'

/** The plan of an export of all customers to csv. */
export function createPlan(more: Partial<ExportPlan> = {}): ExportPlan {
  return {
    run: 'export-1',
    startedAt: new Date().toISOString(),
    servedAt: undefined,
    identity: { workspace: 'acc_1', baseUrl: 'http://127.0.0.1', mode: 'live', store: 'store' },
    resources: ['customers'],
    to: ['csv'],
    since: {},
    filters: {},
    exclude: [],
    hash: [],
    forExcel: false,
    ...more,
  }
}
