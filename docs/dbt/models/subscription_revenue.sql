-- Active subscriptions at list price for one billing period, by plan, before tiers, coupons, addons and taxes.
{{ config(materialized='table') }}

select
  p.id as plan,
  p.currency,
  p.frequency,
  count(distinct s.id) as subscriptions,
  sum(l.quantity) as units,
  sum(l.quantity * p.amount) as at_list_price
from {{ source('billing', 'live_subscriptions') }} s
join {{ source('billing', 'live_subscription_lines') }} l on l.subscription_id = s.id
join {{ source('billing', 'live_plans') }} p on p.id = l.plan
where s.status = 'active'
group by p.id, p.currency, p.frequency
