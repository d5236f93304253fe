import { attentionReasons } from '../billing/resources/subscriptions.ts'

export type Reason = (typeof attentionReasons)[number]
export const reasonNames = attentionReasons

/** The default action for each reason why a subscription needs attention. */
export const reasons: Readonly<Record<Reason, { does: 'try' | 'report'; because: string }>> = {
  gateway_issue: {
    does: 'try',
    because: 'the payment gateway failed; once it works again, a resume brings the subscription back',
  },
  processing_issue: {
    does: 'try',
    because: 'the service failed while billing; once it works again, a resume bills again',
  },
  biller_issue: {
    does: 'try',
    because: 'the biller did not issue the document; once it works again, a resume issues it',
  },
  reference_expired: {
    does: 'report',
    because:
      'its reference (a purchase order, say) has expired; someone has to ask the customer for a new one',
  },
  without_reference: {
    does: 'report',
    because: 'it must carry a reference and has none; someone has to enter it first',
  },
  without_usage_records: {
    does: 'report',
    because: 'no usage was reported for the period; someone has to report it, or nothing would be billed',
  },
}

/** The reasons that are resumed by default. */
export const triedReasons: readonly Reason[] = reasonNames.filter((name) => reasons[name].does === 'try')

export const isReason = (name: string): name is Reason => (reasonNames as readonly string[]).includes(name)

/** Explains why a reason needs a person. */
export const becauseOf = (reason: string): string =>
  isReason(reason) ? reasons[reason].because : 'a reason unknown to this connector'
