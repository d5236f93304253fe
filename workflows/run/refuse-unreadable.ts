import {
  ApplicationFailure,
  type WorkflowInboundCallsInterceptor,
  type WorkflowInterceptorsFactory,
  type WorkflowOutboundCallsInterceptor,
} from '@temporalio/workflow'
import { isUnreadable } from './converters.ts'

const refuse = (name: string, args: readonly unknown[]): void => {
  if (!args.some(isUnreadable)) return
  const how = 'give one JSON object, with the encoding json/plain.'
  throw ApplicationFailure.nonRetryable(`The ${name} can't be read as JSON: ${how}`, 'InvalidInput')
}

class RefusingInterceptor implements WorkflowInboundCallsInterceptor {
  execute: NonNullable<WorkflowInboundCallsInterceptor['execute']> = async (input, next) => {
    refuse('input', input.args)
    return next(input)
  }
  validateUpdate: NonNullable<WorkflowInboundCallsInterceptor['validateUpdate']> = (input, next) => {
    refuse(`input of ${input.name}`, input.args)
    next(input)
  }
  handleQuery: NonNullable<WorkflowInboundCallsInterceptor['handleQuery']> = async (input, next) => {
    refuse(`input of ${input.queryName}`, input.args)
    return next(input)
  }
}

/** Fails the workflow task, which Temporal retries until a worker can read the result. */
class RefusingOutboundInterceptor implements WorkflowOutboundCallsInterceptor {
  scheduleActivity: NonNullable<WorkflowOutboundCallsInterceptor['scheduleActivity']> = async (input, next) =>
    readable(`step ${input.activityType}`, await next(input))
}

function readable<T>(source: string, result: T): T {
  // Not a TemporalFailure, because that would end the run.
  if (isUnreadable(result)) throw new Error(`The result of the ${source} cannot be read as JSON.`)
  return result
}

export const interceptors: WorkflowInterceptorsFactory = () => ({
  inbound: [new RefusingInterceptor()],
  outbound: [new RefusingOutboundInterceptor()],
})
