import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { exportInput, fetchInput, publishAgainInput } from '../core/exports/input.ts'
import { importInput } from '../core/imports/input.ts'
import { mappingSchema } from '../core/imports/mapping/mapping.ts'
import { recoveryInput } from '../core/recoveries/input.ts'
import { schedulableWorkflows } from '../core/schedules/inputs.ts'
import { watchInput } from '../core/schedules/inputs.ts'
import { scheduleSchema, schedulesSchema } from '../scripts/schedules/file.ts'

type JsonSchema = z.core.JSONSchema.BaseSchema

const inputs = {
  exportData: exportInput,
  fetchDocuments: fetchInput,
  publishRun: publishAgainInput,
  importFile: importInput,
  recoverSubscriptions: recoveryInput,
  watchSchedules: watchInput,
  mapping: mappingSchema,
}

/** JSON schemas of what people write, by which an editor completes and checks it: docs/schemas/<name>.json. */
export function schemaFiles(): { path: string; text: string }[] {
  const all = Object.entries(inputs).map(([name, schema]) => [name, toJsonSchema(schema)] as const)
  return [...all, ['schedules', schedulesFile()] as const].map(([name, schema]) => ({
    path: fileURLToPath(new URL(`schemas/${name}.json`, import.meta.url)),
    text: `${JSON.stringify(schema)}\n`,
  }))
}

/** The schema of schedules.yaml: the input of an entry is that of its workflow. */
function schedulesFile(): JsonSchema {
  const { $schema, properties, ...file } = toJsonSchema(schedulesSchema)
  const { $schema: _schema, ...entry } = toJsonSchema(scheduleSchema)
  const byWorkflow = Object.entries(schedulableWorkflows).map(([name, { schema }]) => {
    const { $schema: _, ...input } = toJsonSchema(schema)
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON schema
    return { if: { properties: { workflow: { const: name } } }, then: { properties: { input } } }
  })
  const schedules = { type: 'object', additionalProperties: { ...entry, allOf: byWorkflow } }
  return { $schema, ...file, properties: { ...properties, schedules } } as JsonSchema
}

/** With the help of each field as an editor shows it, and without what only programs set. */
function toJsonSchema(schema: z.ZodType): JsonSchema {
  return z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override({ jsonSchema }) {
      const { help, otherwise } = jsonSchema as { help?: string; otherwise?: string }
      if (help !== undefined)
        jsonSchema.description = otherwise === undefined ? help : `${help} (default: ${otherwise})`
      for (const name of ['help', 'otherwise', 'flag']) delete jsonSchema[name]
      for (const name of ['identity', 'sheets']) delete jsonSchema.properties?.[name]
    },
  })
}
